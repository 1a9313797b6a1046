"""Pages of tenants, one module per noun."""
