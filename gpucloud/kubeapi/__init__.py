"""The protocol core of a Kubernetes API: kinds, objects, patches, watches, Tables, discovery.

It knows nothing of HTTP servers, Django, the ORM or the lab: give it a Store and a Registry, put a
web server in front of Door, or call Cluster directly.
"""
