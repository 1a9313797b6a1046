"""Watching Kubernetes APIs: list once, follow, resume; list again when the past is lost."""
