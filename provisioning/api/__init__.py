"""Providers, node types, images, claims and operations in REST."""
