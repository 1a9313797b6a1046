"""Forms of tenants: a pool's size, a new cluster with its pools, a tenant's quota."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import forms

from inventory.forms import LabelsField
from provisioning.models import NodeType, OSImage
from tenants.models import ClusterTemplate, NodePool, Tenant
from tenants.services.clusters import POOL_LIMIT, free_segments

MOST_POOLS: Final = 20
PARAMETER: Final = "p_"


class SizeForm(forms.Form):
    """The quantity of one static pool."""

    quantity = forms.IntegerField(min_value=0, max_value=POOL_LIMIT)

    def __init__(self, *args: Any, pool: NodePool, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"quantity": pool.quantity})
        kwargs["auto_id"] = f"pool-{pool.name}-%s"
        super().__init__(*args, **kwargs)
        self.pool = pool
        self.fields["quantity"].label = f"Nodes of pool {pool.name}"


class ClusterForm(forms.Form):
    """A new cluster: whose, what it is called, and the template's own parameters."""

    tenant = forms.ChoiceField(label="Tenant")
    template = forms.ChoiceField(label="Template")
    name = forms.CharField(
        max_length=63,
        help_text="Lower-case letters, digits and hyphens; nodes and claims begin with it.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def __init__(
        self,
        *args: Any,
        tenants: Sequence[Tenant],
        tenant: Tenant,
        templates: Sequence[ClusterTemplate],
        template: ClusterTemplate,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields["tenant"].choices = [(t.name, t.display_name or t.name) for t in tenants]  # type: ignore[attr-defined]
        self.fields["template"].choices = [  # type: ignore[attr-defined]
            (t.name, f"{t.title}, version {t.version}") for t in templates
        ]
        if len(tenants) == 1:
            self.fields["tenant"].widget = forms.HiddenInput()
        if len(templates) == 1:
            self.fields["template"].widget = forms.HiddenInput()
        self.parameters = template.parameters
        for one in template.parameters:
            self.fields[f"{PARAMETER}{one['key']}"] = parameter_field(one, tenant)

    @property
    def given(self) -> dict[str, Any]:
        """The template's parameters as they were given, blank ones left out."""
        found = {}
        for one in self.parameters:
            value = self.cleaned_data.get(f"{PARAMETER}{one['key']}")
            if value not in (None, ""):
                found[one["key"]] = value
        return found


def parameter_field(one: Mapping[str, Any], tenant: Tenant) -> forms.Field:
    """The form field of one typed parameter of a template."""
    common: dict[str, Any] = {
        "label": one.get("label") or one["key"],
        "help_text": one.get("help", ""),
        "required": bool(one.get("required")),
        "initial": one.get("default"),
    }
    kind = one["type"]
    if kind == "boolean":
        return forms.BooleanField(**{**common, "required": False})
    if kind == "number":
        return forms.FloatField(**common)
    if kind == "string":
        return forms.CharField(**common)
    return forms.ChoiceField(choices=_choices(kind, one, tenant, common["required"]), **common)


def _choices(
    kind: str, one: Mapping[str, Any], tenant: Tenant, required: bool
) -> list[tuple[str, str]]:
    if kind == "segment":
        found = [
            (s.name, f"{s.name} · VLAN {s.vlan} · {s.cidr}, free") for s in free_segments(tenant)
        ]
        blank = "The tenant's only free one" if len(found) == 1 else "A new one, made for it"
    elif kind == "os_image":
        found, blank = [(i.name, i.display_name or i.name) for i in OSImage.objects.all()], "–"
    elif kind == "node_type":
        found, blank = [(t.full_name, t.full_name) for t in NodeType.objects.all()], "–"
    else:
        found, blank = [(str(o), str(o)) for o in one.get("options", [])], "–"
    return found if required else [("", blank), *found]


class PoolForm(forms.Form):
    """One row of the new cluster's pools; a row that nobody touched is no pool."""

    name = forms.CharField(
        max_length=40,
        label="Name",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    node_type = forms.ModelChoiceField(
        NodeType.objects.all(), to_field_name="full_name", label="Node type", empty_label="Choose"
    )
    quantity = forms.IntegerField(min_value=0, max_value=POOL_LIMIT, initial=1, label="Nodes")
    labels = LabelsField(
        required=False,
        label="Node labels",
        widget=forms.TextInput(attrs={"class": "id", "placeholder": "key=value, key=value"}),
    )
    image = forms.ModelChoiceField(
        OSImage.objects.all(),
        to_field_name="name",
        required=False,
        empty_label="The node type's own",
        label="OS image",
    )

    @property
    def blank(self) -> bool:
        return not self.has_changed()


PoolFormSet = forms.formset_factory(PoolForm, extra=2, max_num=MOST_POOLS, validate_max=True)


class TenantForm(forms.Form):
    """A tenant: its name for people, and what it may hold."""

    name = forms.CharField(
        max_length=63,
        help_text="Lower-case letters, digits and hyphens. It stays.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    display_name = forms.CharField(label="Name for people", max_length=100, required=False)
    project_namespace = forms.CharField(
        label="Project namespace",
        max_length=63,
        required=False,
        help_text="The tenant platform's namespace. Blank: p-<name>.",
    )
    servers = forms.IntegerField(
        label="Servers at most", min_value=0, required=False, help_text="Blank: no limit."
    )
    gpus = forms.IntegerField(
        label="GPUs at most", min_value=0, required=False, help_text="Blank: no limit."
    )

    def __init__(self, *args: Any, tenant: Tenant | None = None, **kwargs: Any) -> None:
        if tenant is not None:
            kwargs["initial"] = {"display_name": tenant.display_name, **tenant.quota}
        super().__init__(*args, **kwargs)
        if tenant is not None:
            del self.fields["name"], self.fields["project_namespace"]

    @property
    def quota(self) -> dict[str, int]:
        keys = ("servers", "gpus")
        found = {key: self.cleaned_data.get(key) for key in keys}
        return {key: value for key, value in found.items() if value is not None}
