"""Servers in REST."""
