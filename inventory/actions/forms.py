"""What actions ask before they act; most ask nothing."""

from __future__ import annotations

from typing import Any

from django import forms

from gpucloud.problems import Invalid
from inventory.forms import BmcForm, LabelsField
from inventory.models import Interface, Server
from network.models import Fabric


class ActionForm(forms.Form):
    """What an action asks; most ask nothing."""

    def __init__(self, *args: Any, server: Server, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.server = server

    def names(self, problem: Invalid) -> None:
        """Put what the service refused beside the fields that it names."""
        for path, sentences in problem.fields.items():
            name = path.rpartition(".")[2]
            name = "confirm" if name == "name" and "confirm" in self.fields else name
            self.add_error(name if name in self.fields else None, sentences)


class ReasonForm(ActionForm):
    reason = forms.CharField(
        label="Reason",
        max_length=200,
        help_text="Shown on the server's page to whoever comes next.",
    )


class MaintenanceForm(ReasonForm):
    until = forms.DateTimeField(
        label="Expected end",
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text="In your zone. Nothing ends by itself: somebody lifts it.",
    )


class TypedNameForm(ActionForm):
    """For what cannot be taken back: the person types the server's name."""

    confirm = forms.CharField(
        label="Type its name", widget=forms.TextInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["confirm"].label = f"Type {self.server.name} to confirm"


class LabelsForm(ActionForm):
    labels = LabelsField(
        label="Labels",
        required=False,
        widget=forms.Textarea(attrs={"rows": 6, "class": "id", "spellcheck": "false"}),
        help_text="key=value, one a line. Labels left out are removed.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial.setdefault("labels", self.server.labels)


class BmcSettingsForm(ActionForm, BmcForm):
    """The BMC of a registered server; credentials left blank stay as they are."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        bmc = getattr(self.server, "bmc", None)
        if bmc is not None:
            self.initial.setdefault("driver", bmc.driver)
            self.initial.setdefault("address", bmc.address)
        self.fields["password"].help_text = "Leave user name and password blank to keep them."

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        if bool(data.get("username")) != bool(data.get("password")):
            missing = "password" if data.get("username") else "username"
            self.add_error(missing, "User name and password are set together.")
        return data


class CableForm(ActionForm):
    """One interface of the server and the switch port that it is in."""

    interface = forms.ModelChoiceField(
        Interface.objects.none(), label="Interface", empty_label=None
    )
    fabric = forms.ModelChoiceField(Fabric.objects.all(), label="Fabric", empty_label=None)
    switch = forms.CharField(label="Switch", max_length=63)
    port = forms.CharField(label="Switch port", max_length=63)
    plugged = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = self.server.interfaces.filter(link__isnull=not self.plugged)
        field: Any = self.fields["interface"]
        field.queryset = rows.select_related("link", "server")
        field.label_from_instance = self.words

    @staticmethod
    def words(one: Interface) -> str:
        cable = f", in {one.link}" if hasattr(one, "link") else ""
        return f"{one.name}, {one.mac}{cable}"


class UncableForm(CableForm):
    """One interface of the server whose cable is forgotten."""

    fabric = None  # type: ignore[assignment]
    switch = None  # type: ignore[assignment]
    port = None  # type: ignore[assignment]
    plugged = True


class AddressForm(ActionForm):
    """The provisioning address; blank takes it away."""

    address = forms.CharField(
        label="Address", required=False, max_length=50, help_text="For example 10.10.0.12/22."
    )
    gateway = forms.GenericIPAddressField(label="Gateway", required=False)
    dns = forms.CharField(
        label="Name servers", required=False, max_length=200, help_text="Separated by commas."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for key in self.fields:
            self.initial.setdefault(key, getattr(self.server, f"provisioning_{key}"))
