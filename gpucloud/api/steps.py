"""Steps in REST: whole to the platform; to a tenant what each means, not what lies under it."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from gpucloud.api.fields import Moment
from gpucloud.models import Step
from gpucloud.reasons import reason

# A driver's sentences name BMCs, racks and switch ports, which are not a tenant's business.
MEANING = {
    "select": "A healthy, wiped server that fits your claim.",
    "configure": "Your user data, network data and join token are written.",
    "setup": "Image and data are handed to the installer; the server is still powered off.",
    "install": "The image is written outside of your network; none of your software runs yet.",
    "stop": "Powered off and read back before anything is moved.",
    "move": "All links go through quarantine into your segment, off, read back after each.",
    "boot": "First boot of your system, in your segment.",
    "join": "The node becomes Ready in your cluster.",
    "verify": "GPUs against the node type, and its links once more.",
    "drain": "The node is drained and leaves your cluster.",
    "return": "All links leave your segment through quarantine, off, read back after each.",
    "deprovision": "Your image and data are taken from the installer.",
    "wipe": "Every drive is wiped.",
    "check": "The wiped drives are compared with the inventory.",
    "inspect": "The hardware is read.",
    "network": "Your segment is put on the fabric and read back.",
    "scheduling": "A place for the control plane is found.",
    "creating-namespace": "The control plane's namespace is made.",
    "deploying": "The control plane is deployed.",
    "available": "The control plane's parts run.",
    "connected": "The control plane's API answers.",
    "ready": "The control plane is ready.",
    "release nodes": "All nodes go home and are wiped.",
    "remove control plane": "The control plane is removed.",
    "remove network": "The network is undone.",
}


class StepForTenant(serializers.Serializer[Any]):
    run = serializers.IntegerField()
    index = serializers.IntegerField()
    name = serializers.CharField()
    state = serializers.CharField()
    sentence = serializers.SerializerMethodField()
    code = serializers.CharField()
    next = serializers.SerializerMethodField()
    attempts = serializers.IntegerField()
    percent = serializers.IntegerField(allow_null=True)
    started = Moment(allow_null=True)
    ended = Moment(allow_null=True)
    deadline = Moment(allow_null=True)

    def get_sentence(self, step: Step) -> str:
        return reason(step.code).sentence if step.code else MEANING.get(step.name, "")

    def get_next(self, step: Step) -> str:
        return reason(step.code).next if step.code else ""


class StepSerializer(StepForTenant):
    hint = serializers.CharField(required=False)
    alarmed = serializers.BooleanField(required=False)
    failures = serializers.IntegerField(required=False)
    next_try_at = Moment(allow_null=True, required=False)
    ref = serializers.CharField(required=False)
    evidence = serializers.JSONField(required=False)
    lines = serializers.JSONField(required=False)

    def get_sentence(self, step: Step) -> str:
        return step.sentence


def steps_of(kind: str, uid: Any, run: int | None = None, *, platform: bool) -> Any:
    """The steps of an owner as this audience sees them: of one run, or all."""
    rows = Step.objects.filter(kind=kind, owner_uid=uid).order_by("run", "index")
    if run:
        rows = rows.filter(run=run)
    return (StepSerializer if platform else StepForTenant)(rows, many=True).data
