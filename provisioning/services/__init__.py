"""The only code that changes claims and operations."""
