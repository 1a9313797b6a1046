"""One parent for all processes of an installation: starts, watches, restarts and stops them.

It loads no Django, so it starts at once and survives whatever is wrong with the project.
"""
