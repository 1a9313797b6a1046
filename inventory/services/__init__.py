"""The only code that changes servers."""
