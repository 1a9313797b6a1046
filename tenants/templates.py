"""Cluster templates: typed parameters checked, and the body rendered as data, never as joined text.

A body is JSON in which `{"$parameter": key}` stands for a parameter's value and `{"$cluster":
path}` for a fact of the cluster (`name`, `tenant`, `namespace`, `endpoint`, `segment.gateway_cidr`,
`nad`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpucloud.problems import Invalid

if TYPE_CHECKING:
    from tenants.models import ClusterTemplate, TenantCluster

TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "choice": str,
    "segment": str,
    "os_image": str,
    "node_type": str,
}


def clean(template: ClusterTemplate, given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with defaults filled in;

    Invalid names each that is unknown, missing or of a wrong type.
    """
    known = {one["key"]: one for one in template.parameters}
    errors: dict[str, list[str]] = {
        f"parameters.{key}": [
            f"This template has no such parameter. It has: {', '.join(known) or 'none'}."
        ]
        for key in given
        if key not in known
    }
    values: dict[str, Any] = {}
    for key, one in known.items():
        value = given.get(key, one.get("default"))
        if value in (None, ""):
            if one.get("required"):
                errors[f"parameters.{key}"] = ["This is required."]
            continue
        wanted = TYPES[one["type"]]
        if not isinstance(value, wanted) or (wanted is not bool and isinstance(value, bool)):
            errors[f"parameters.{key}"] = [f"Give a {one['type']}."]
        elif one["type"] == "choice" and value not in one.get("options", []):
            errors[f"parameters.{key}"] = [f"Choose one of {', '.join(one.get('options', []))}."]
        else:
            values[key] = value
    if errors:
        raise Invalid(errors)
    return values


def render(body: Any, parameters: dict[str, Any], facts: dict[str, Any]) -> Any:
    """Replace the places of a body by values, keeping their types;

    a place without a value drops its key.
    """
    if isinstance(body, dict):
        if set(body) == {"$parameter"}:
            return parameters.get(body["$parameter"])
        if set(body) == {"$cluster"}:
            found: Any = facts
            for part in body["$cluster"].split("."):
                found = found.get(part) if isinstance(found, dict) else None
            return found
        rendered = {key: render(value, parameters, facts) for key, value in body.items()}
        return {
            key: value
            for key, value in rendered.items()
            if not (value is None and isinstance(body[key], dict) and body[key])
        }
    if isinstance(body, list):
        return [render(value, parameters, facts) for value in body]
    return body


def attachment_name(bridge: str, cluster: str) -> str:
    """The NetworkAttachmentDefinition of a cluster, as the field names it: `br0-vcluster-one`."""
    return f"{bridge or 'br0'}-vcluster-{cluster}"


def render_values(cluster: TenantCluster, segment: dict[str, Any]) -> dict[str, Any]:
    """vcluster.yaml of a cluster as data, without autoNodes: pools stay ours."""
    nad = attachment_name(str(segment.get("host_bridge", "")), cluster.name)
    facts = {
        "name": cluster.name,
        "tenant": cluster.tenant.name,
        "namespace": cluster.tenant.namespace,
        "endpoint": cluster.node_endpoint,
        "segment": segment,
        "nad": f"{cluster.tenant.namespace}/{nad}",
    }
    values: dict[str, Any] = render(cluster.template.body, cluster.parameters, facts)
    nodes = values.get("privateNodes")
    if isinstance(nodes, dict):
        nodes.pop("autoNodes", None)
    return values
