"""How clusters and tenants are drawn: rows and words in, plain values out."""
