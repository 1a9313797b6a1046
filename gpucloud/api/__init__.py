"""The REST API: token auth, cursor paging, problem+json, and the router that gathers the apps'
viewsets.
"""
