"""Kinds that are asked and never kept: may I, what may I, who am I."""

from __future__ import annotations

from collections.abc import Callable

from gpucloud.kubeapi.errors import ApiError, Obj
from gpucloud.kubeapi.kinds import Resource
from gpucloud.kubeapi.requests import Attributes, User

Check = Callable[[User, Attributes, Obj | None], None]


def answer(resource: Resource, asked: Obj, user: User, check: Check) -> Obj:
    """The same object with its status filled in."""
    told = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}}
    spec = asked.get("spec") or {}
    if resource.kind == "SelfSubjectReview":
        return told | {"status": {"userInfo": {"username": user.name, "groups": [*user.groups]}}}
    if resource.kind == "SelfSubjectRulesReview":
        return told | {"spec": spec, "status": _rules(user, check)}
    who = user
    if resource.kind == "SubjectAccessReview":
        who = User(str(spec.get("user", "")), tuple(spec.get("groups") or ()))
    return told | {"spec": spec, "status": _access(spec, who, check)}


def _access(spec: Obj, user: User, check: Check) -> Obj:
    wanted = spec.get("resourceAttributes") or {}
    plural, group = str(wanted.get("resource", "")), wanted.get("group")
    asked = Attributes(
        verb=str(wanted.get("verb") or (spec.get("nonResourceAttributes") or {}).get("verb", "")),
        resource=f"{plural}.{group}" if group else plural,
        namespace=str(wanted.get("namespace", "")),
        name=str(wanted.get("name", "")),
        subresource=str(wanted.get("subresource", "")),
        dry=True,
    )
    try:
        check(user, asked, None)
    except ApiError as refused:
        return {"allowed": False, "reason": refused.message}
    return {"allowed": True}


def _rules(user: User, check: Check) -> Obj:
    try:
        check(user, Attributes("*", "*", dry=True), None)
    except ApiError:
        return {"resourceRules": [], "nonResourceRules": [], "incomplete": True}
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
    return {"resourceRules": [everything], "nonResourceRules": [paths], "incomplete": False}
