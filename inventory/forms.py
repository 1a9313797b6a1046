"""Forms of servers: registering one, its BMC and its ports."""

from __future__ import annotations

import re
from typing import Any, Final

from django import forms
from django.conf import settings

from gpucloud import labels
from gpucloud.drivers import driver_class
from gpucloud.problems import Invalid
from inventory.models import Interface, KubernetesConnection
from inventory.services.bmcs import connection_values
from network.models import Fabric

MAC: Final = re.compile(r"^[0-9a-f]{2}(:[0-9a-f]{2}){5}$")
MOST_PORTS: Final = 32


def rows_of(data: Any, prefix: str) -> int:
    """How many rows a formset was sent with; what is no such number counts as none."""
    text = str(data.get(f"{prefix}-TOTAL_FORMS", ""))
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 4 else 0


class LabelsField(forms.CharField):
    """Labels as lines of key=value; a dict when clean."""

    widget = forms.Textarea(attrs={"rows": 3, "class": "id", "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return "\n".join(f"{key}={text}" for key, text in sorted(value.items()))
        return value

    def clean(self, value: Any) -> dict[str, str]:
        text = super().clean(value)
        found: dict[str, str] = {}
        for line in filter(None, (line.strip() for line in re.split(r"[\n,]", text))):
            key, equals, label = (part.strip() for part in line.partition("="))
            if not equals or labels.problem(key, label):
                raise forms.ValidationError(
                    f"“{line[:60]}” is not a label. Write key=value, one a line."
                )
            found[key] = label
        return found


def bmc_drivers() -> list[tuple[str, str]]:
    return [(key, driver_class("bmc", key).label) for key in settings.DRIVERS["bmc"]]


class BmcForm(forms.Form):
    """One door to the power of one server. The password is only ever set, never shown again."""

    driver = forms.ChoiceField(
        label="Driver",
        choices=bmc_drivers,
        help_text="What switches the power: the BMC itself, or Metal3 that owns it.",
    )
    address = forms.CharField(
        label="Address",
        required=False,
        max_length=300,
        help_text="For example https://10.20.1.11, or with the system: …/redfish/v1/Systems/1.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    username = forms.CharField(
        label="User name",
        required=False,
        max_length=100,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    password = forms.CharField(
        label="Password",
        required=False,
        max_length=200,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Kept encrypted; shown to nobody again.",
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("driver") == "redfish" and not data.get("address"):
            self.add_error(
                "address", "Give the address of the BMC, for example https://10.20.1.11."
            )
        return data

    def tried(
        self, connection: KubernetesConnection | None = None, host: str = ""
    ) -> dict[str, Any]:
        """What the driver is tried with: those of the values that it knows."""
        data = self.cleaned_data
        names = driver_class("bmc", data["driver"]).Config.__dataclass_fields__
        offered = {
            **{key: data.get(key, "") for key in ("address", "username", "password")},
            **connection_values(connection),
            "host": host.rpartition("/")[2],
        }
        return {key: value for key, value in offered.items() if key in names}


class RegisterForm(BmcForm):
    """A server as a person registers it; its ports are a formset beside it."""

    field_order = ("name", "labels")

    name = forms.CharField(
        label="Name",
        max_length=63,
        help_text="Lower-case letters, digits and hyphens; also the name of its node.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    labels = LabelsField(
        label="Labels",
        required=False,
        help_text="key=value, one a line. Node types select by them.",
    )
    connection = forms.ModelChoiceField(
        KubernetesConnection.objects.order_by("name"),
        label="Kubernetes connection",
        required=False,
        empty_label="None: the server is not behind Metal3",
        help_text="Where its BareMetalHost lives.",
    )
    engine_id = forms.CharField(
        label="BareMetalHost",
        required=False,
        max_length=130,
        help_text="namespace/name, as Metal3 knows the server.",
    )
    site = forms.CharField(label="Site", required=False, max_length=63)
    rack = forms.CharField(label="Rack", required=False, max_length=63)
    slot = forms.IntegerField(label="Slot (U)", required=False, min_value=1, max_value=99)
    fabric = forms.ModelChoiceField(
        Fabric.objects.all(),
        label="Fabric of the switch ports",
        required=False,
        empty_label="None: cables are recorded later",
    )
    provisioning_address = forms.CharField(
        label="Provisioning address",
        required=False,
        max_length=50,
        help_text="With its prefix, for example 10.10.0.12/22. Given by DHCP, only while the "
        "server is in the provisioning segment.",
    )
    provisioning_gateway = forms.GenericIPAddressField(label="Gateway", required=False)
    provisioning_dns = forms.CharField(
        label="Name servers", required=False, max_length=200, help_text="Separated by commas."
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        if data.get("driver") == "metal3" and not data.get("connection"):
            self.add_error("connection", "Metal3 switches the power here: name its connection.")
        if data.get("connection") and not data.get("engine_id"):
            self.add_error(
                "engine_id", "Say which BareMetalHost it is, for example default/dgx-01."
            )
        return data

    def needs_fabric(self, ports: Ports) -> bool:
        """Whether a cable was given without the fabric that its switch belongs to."""
        cabled = any(row.cleaned_data.get("switch_port") for row in ports.filled)
        if cabled and not self.cleaned_data.get("fabric"):
            self.add_error("fabric", "Say which fabric the switches belong to.")
            return True
        return False

    def wish(self) -> dict[str, Any]:
        """The arguments of `servers.enroll` but the name and the ports."""
        data = self.cleaned_data
        bmc = {key: data.get(key, "") for key in ("driver", "address", "username", "password")}
        return {
            "bmc": bmc,
            "labels": data["labels"],
            "connection": data["connection"],
            "engine_id": data["engine_id"],
            "site": data["site"],
            "rack": data["rack"],
            "slot": data["slot"],
            "provisioning": {
                key: data[f"provisioning_{key}"] or "" for key in ("address", "gateway", "dns")
            },
        }

    def refuse(self, problem: Invalid, ports: Any) -> None:
        """Put what the service refused beside the fields that it names."""
        for path, sentences in problem.fields.items():
            head, _, rest = path.partition(".")
            index, _, field = rest.partition(".")
            if head == "interfaces" and index.isdigit():
                row = ports.filled[int(index)]
                row.add_error(field if field in row.fields else None, sentences)
                continue
            name = f"provisioning_{rest}" if head == "provisioning" else (rest or head)
            self.add_error(name if name in self.fields else None, sentences)


class PortForm(forms.Form):
    """One port of a server; a row left blank is no port."""

    name = forms.CharField(label="Port", max_length=32, required=False)
    mac = forms.CharField(
        label="MAC address",
        max_length=23,
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "b8:3f:d2:5e:01:a1", "spellcheck": "false"}),
    )
    roles = forms.MultipleChoiceField(
        label="NIC roles",
        choices=[(role, role) for role in Interface.ROLES],
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    switch = forms.CharField(
        label="Switch",
        max_length=63,
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "leaf-1"}),
    )
    switch_port = forms.CharField(
        label="Switch port",
        max_length=63,
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "swp3"}),
    )

    def clean_mac(self) -> str:
        mac = str(self.cleaned_data["mac"]).strip().lower().replace("-", ":")
        if mac and not MAC.match(mac):
            raise forms.ValidationError("Six pairs of hex digits, for example b8:3f:d2:5e:01:a1.")
        return mac

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        given = [data.get(key) for key in ("name", "mac")]
        if any(given) and not all(given) and not self.errors:
            self.add_error("mac" if data.get("name") else "name", "A port has a name and a MAC.")
        if bool(data.get("switch")) != bool(data.get("switch_port")):
            missing = "switch_port" if data.get("switch") else "switch"
            self.add_error(missing, "A cable is a switch and a port of it.")
        return data


class Ports(forms.BaseFormSet):  # type: ignore[type-arg]
    """The rows of ports that hold something, and their shape for the service."""

    @property
    def filled(self) -> list[PortForm]:
        return [row for row in self.forms if row.cleaned_data.get("mac")]

    def clean(self) -> None:
        seen: set[str | None] = set()
        for row in self.forms:
            mac = getattr(row, "cleaned_data", {}).get("mac")
            if mac and mac in seen:
                row.add_error("mac", f"{mac} stands in another row already.")
            seen.add(mac)

    def wish(self) -> list[dict[str, Any]]:
        return [
            {key: row.cleaned_data[key] for key in ("name", "mac", "roles")} for row in self.filled
        ]


def port_rows(data: Any = None, rows: int = 2) -> Ports:
    """The formset, unbound with blank rows or bound to what was typed."""
    made: Any = forms.formset_factory(
        PortForm, formset=Ports, extra=rows, max_num=MOST_PORTS, absolute_max=MOST_PORTS
    )
    initial = [{"name": "nic1", "roles": ["boot", "tenant"]}] if data is None else None
    found: Ports = made(data, prefix="ports", initial=initial)
    return found
