"""Forms of provisioning: providers from their driver's settings, node types, OS images."""

from __future__ import annotations

import dataclasses
from typing import Any

from django import forms

from gpucloud import driver_forms, vault
from gpucloud.drivers import driver_class
from inventory.forms import LabelsField
from inventory.models import Interface, KubernetesConnection
from provisioning.models import NodeProvider, NodeType, OSImage
from provisioning.services.node_types import WIPE_POLICIES

# What a Kubernetes connection gives to a driver that wants it.
FROM_CONNECTION = ("kubeconfig", "namespace")
PLAIN = {"autocomplete": "off", "spellcheck": "false"}


class ProviderForm(forms.Form):
    """A node provider; below the fixed fields stand those of its driver."""

    name = forms.CharField(
        max_length=40,
        help_text="Lower-case letters, digits and hyphens. Node types begin with it; it stays.",
        widget=forms.TextInput(attrs=PLAIN),
    )
    display_name = forms.CharField(label="Name for people", max_length=100, required=False)
    connection = forms.ModelChoiceField(
        KubernetesConnection.objects.order_by("name"),
        to_field_name="name",
        required=False,
        empty_label="None",
        help_text="Gives kubeconfig and namespace to a driver that wants them.",
    )

    def __init__(
        self, *args: Any, driver: str, provider: NodeProvider | None = None, **kwargs: Any
    ) -> None:
        stored, kept = {}, set()
        if provider is not None:
            stored = provider.config
            kept = set(vault.get("provider", provider.uid, "credentials", {}) or {})
            kwargs["initial"] = {
                "display_name": provider.display_name,
                "connection": provider.connection.name if provider.connection else None,
            }
        super().__init__(*args, **kwargs)
        if provider is not None:
            del self.fields["name"]
        self.fields |= driver_forms.fields("provider", driver, stored, kept, FROM_CONNECTION)

    @property
    def wish(self) -> dict[str, Any]:
        """What the service takes, but name and driver."""
        data = self.cleaned_data
        return {
            "display_name": data["display_name"],
            "connection": data["connection"],
            "config": driver_forms.given(data),
        }


class NodeTypeForm(forms.Form):
    """An orderable shape of one provider."""

    provider = forms.ModelChoiceField(
        NodeProvider.objects.order_by("name"), to_field_name="name", empty_label=None
    )
    name = forms.CharField(
        max_length=40,
        help_text="Its full name is <provider>.<name>; it stays.",
        widget=forms.TextInput(attrs=PLAIN),
    )
    display_name = forms.CharField(label="Name for people", max_length=100, required=False)
    selector = LabelsField(
        required=False,
        label="Server labels",
        help_text="A server must carry all of them: key=value, one a line. Blank fits every one.",
    )
    gpu_count = forms.IntegerField(
        label="GPUs promised",
        min_value=0,
        max_value=64,
        required=False,
        help_text="Verify compares with the last inspection. Blank compares nothing.",
    )
    gpu_model = forms.CharField(
        label="GPU model promised", max_length=100, required=False, help_text="As inspected."
    )
    nic_plan = forms.MultipleChoiceField(
        label="NIC plan",
        choices=[(role, role) for role in Interface.ROLES],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text="Ports of these roles move onto the tenant's segment, all or none.",
    )
    image = forms.ModelChoiceField(
        OSImage.objects.order_by("name"),
        to_field_name="name",
        required=False,
        empty_label="None: each pool names one",
        label="OS image",
    )
    post_seconds = forms.IntegerField(
        label="Longest POST in seconds",
        min_value=1,
        max_value=7200,
        initial=600,
        help_text="Later than this after power-on, a server may have begun to boot.",
    )
    wipe_policy = forms.ChoiceField(
        label="Evidence of wipes",
        choices=[
            (p, {"verified": "Verified by our agent", "engine": "Told by the engine"}[p])
            for p in WIPE_POLICIES
        ],
    )
    cost = forms.IntegerField(
        label="Cost", min_value=0, initial=0, help_text="Cheaper types are ordered first."
    )

    def __init__(self, *args: Any, node_type: NodeType | None = None, **kwargs: Any) -> None:
        if node_type is not None:
            kwargs["initial"] = {
                **{f: getattr(node_type, f) for f in _COLUMNS},
                **node_type.sku,
                "image": node_type.image.name if node_type.image else None,
            }
        super().__init__(*args, **kwargs)
        if node_type is not None:
            del self.fields["provider"], self.fields["name"]

    @property
    def wish(self) -> dict[str, Any]:
        """What the service takes, but provider and name."""
        data = self.cleaned_data
        sku = {key: data[key] for key in ("gpu_count", "gpu_model") if data[key] not in (None, "")}
        return {**{f: data[f] for f in _COLUMNS}, "sku": sku, "image": data["image"]}


_COLUMNS = ("display_name", "selector", "nic_plan", "post_seconds", "wipe_policy", "cost")


class ImageForm(forms.Form):
    """What may be written to disks."""

    name = forms.CharField(
        max_length=63,
        help_text="Lower-case letters, digits and hyphens. It stays.",
        widget=forms.TextInput(attrs=PLAIN),
    )
    display_name = forms.CharField(label="Name for people", max_length=100, required=False)
    url = forms.CharField(
        label="URL",
        max_length=500,
        help_text="http or https, reachable from the provisioning segment; no password in it.",
        widget=forms.TextInput(attrs=PLAIN),
    )
    checksum_type = forms.ChoiceField(label="Checksum type", choices=OSImage.ChecksumType.choices)
    checksum = forms.CharField(
        max_length=128,
        help_text="Hexadecimal, of the whole file. Install refuses anything else.",
        widget=forms.TextInput(attrs={**PLAIN, "class": "id"}),
    )
    format = forms.ChoiceField(choices=OSImage.Format.choices, initial=OSImage.Format.QCOW2)

    def __init__(self, *args: Any, image: OSImage | None = None, **kwargs: Any) -> None:
        if image is not None:
            kwargs["initial"] = {f: getattr(image, f) for f in self.base_fields if f != "name"}
        super().__init__(*args, **kwargs)
        if image is not None:
            del self.fields["name"]


def config_names(driver: str) -> dict[str, str]:
    """The service's dotted names of a driver's settings, and the form's."""
    names = [f.name for f in dataclasses.fields(driver_class("provider", driver).Config)]
    return {f"config.{name}": f"{driver_forms.PREFIX}{name}" for name in names}
