"""The only code that changes tenants, clusters and pools."""
