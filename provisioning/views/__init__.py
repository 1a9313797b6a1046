"""Pages of provisioning, one module per noun."""
