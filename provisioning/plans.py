"""The plan of an operation:

which leases it needs, what each step does, and what its ends mean for claim and server.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.db.models import F
from django.db.models.functions import Now

from gpucloud.drivers import DriverError, Progress
from gpucloud.live.publish import publish
from gpucloud.models import Step
from inventory.lifecycle import SERVER
from inventory.models import Server
from network.services import moves
from provisioning.lifecycle import CLAIM, OPERATION
from provisioning.models import NodeClaim, Operation
from provisioning.services.claims import let_go
from provisioning.services.providers import driver_of
from provisioning.spec import node_spec
from provisioning.steps import STEPS
from provisioning.steps.cleaning import open_gate

FABRIC_STEPS = ("move", "return")


class OperationPlan:
    kind = "operation"

    def load(self, uid: UUID) -> Operation | None:
        return (
            Operation.objects.select_related(
                "claim__node_type__provider__connection",
                "claim__cluster__segment__fabric",
                "claim__tenant",
                "claim__image",
                "claim__server",
                "server__connection",
            )
            .filter(uid=uid, state=Operation.State.ACTIVE)
            .first()
        )

    def leases(self, owner: Operation, step: Step) -> list[str]:
        if owner.server is None:
            # Not bound yet: claims of one type choose one after the other, so that the oldest is
            # served first.
            assert owner.claim is not None
            return [f"server:type-{owner.claim.node_type_id}"]
        wanted = [f"server:{owner.server.uid}"]
        if step.name in FABRIC_STEPS and owner.claim is not None:
            ports = moves.plan_interfaces(owner.server, owner.claim.node_type.nic_plan)
            wanted += [f"fabric:{fabric.uid}" for fabric in moves.fabrics_of(ports)]
        return wanted

    def lock(self, owner: Operation) -> None:
        if owner.claim is not None:
            NodeClaim.objects.select_for_update(no_key=True).filter(pk=owner.claim.pk).first()
        elif owner.server is not None:
            Server.objects.select_for_update(no_key=True).filter(pk=owner.server.pk).first()

    def run(self, owner: Operation, step: Step) -> Progress:
        return STEPS[step.name](owner, step)

    def on_started(self, owner: Operation, step: Step) -> None:
        self._tell(owner)

    def on_looked(self, owner: Operation, step: Step) -> None:
        if owner.claim_id:
            NodeClaim.objects.filter(pk=owner.claim_id).update(code=step.code)
        self._tell(owner)

    def on_done(self, owner: Operation, step: Step, progress: Progress) -> None:
        if owner.claim_id:
            NodeClaim.objects.filter(pk=owner.claim_id).update(code="")
        if step.name == "check":
            open_gate(owner)
        self._tell(owner)

    def on_finished(self, owner: Operation) -> None:
        owner.refresh_from_db()
        OPERATION.move(owner, "finish", "engine", ended=Now())
        if owner.kind == Operation.Kind.CLAIM:
            assert owner.claim is not None
            owner.claim.refresh_from_db()
            CLAIM.move(
                owner.claim,
                "ready",
                "engine",
                f"{owner.claim} is ready on {owner.server}.",
                ready_at=Now(),
            )
            self._cluster(owner)
        elif owner.kind == Operation.Kind.RELEASE:
            assert owner.claim is not None
            owner.claim.refresh_from_db()
            let_go(
                owner.claim, "engine", f"{owner.claim} is gone; {owner.server} is on offer again."
            )
        elif owner.kind == Operation.Kind.INSPECT:
            self._inspected(owner)

    def _inspected(self, owner: Operation) -> None:
        from inventory.services.servers import declare_blank

        server = owner.server
        assert server is not None
        server.refresh_from_db()
        if server.state == Server.State.ENROLLED and server.clean_tenancy == server.tenancy:
            SERVER.move(server, "offer", owner.actor)
        elif (
            owner.data.get("declare_blank")
            and server.state == Server.State.ENROLLED
            and server.tenancy == 1
        ):
            declare_blank(server, owner.actor, server.name)

    def on_failed(self, owner: Operation, step: Step, error: DriverError) -> None:
        """The claim or server says what stopped;

        nothing is let go: a failed claim still holds its server.
        """
        owner.refresh_from_db()
        OPERATION.move(
            owner,
            "fail",
            "engine",
            f"{step.name.capitalize()} stopped: {error.message}",
            code=error.code,
            problem=error.message,
            ended=Now(),
        )
        if owner.kind == Operation.Kind.CLAIM:
            assert owner.claim is not None
            owner.claim.refresh_from_db()
            CLAIM.move(
                owner.claim,
                "fail",
                "engine",
                f"{step.name.capitalize()} stopped: {error.message}",
                code=error.code,
                problem=error.message,
            )
            self._cluster(owner)
            return
        if owner.claim_id:
            NodeClaim.objects.filter(pk=owner.claim_id).update(
                code=error.code, problem=error.message, rev=F("rev") + 1
            )
        server = owner.server
        if server is not None:
            server.refresh_from_db()
            if SERVER.may(server.state, "fail"):
                SERVER.move(
                    server,
                    "fail",
                    "engine",
                    f"{step.name.capitalize()} of {server} stopped: {error.message}",
                    code=error.code,
                    problem=error.message,
                )
        self._tell(owner)

    def halt(self, owner: Operation, step: Step) -> None:
        """An installer that nobody waits for must not finish: it would boot the tenant's system in
        the provisioning segment.
        """
        if owner.claim is None or step.name not in ("setup", "install"):
            return
        spec = replace(node_spec(owner, step), verb="release")
        driver_of(owner.claim.node_type.provider).remove(spec, "stopped")

    def on_alarm(self, owner: Operation, step: Step) -> None:
        from gpucloud import history

        subject = owner.claim or owner.server
        history.record(
            subject,
            "alarm",
            "engine",
            f"{subject} waits longer than usual in {step.name}.",
            code=step.code,
            tenant=getattr(subject, "tenant", None),
        )

    def _cluster(self, owner: Operation) -> None:
        from gpucloud.engine.steps import look_now

        if owner.claim and owner.claim.cluster:
            look_now("cluster", owner.claim.cluster.uid)

    def _tell(self, owner: Operation) -> None:
        """Live pages re-read the claim and the server whose step has moved."""
        if owner.claim_id:
            NodeClaim.objects.filter(pk=owner.claim_id).update(rev=F("rev") + 1)
            claim = NodeClaim.objects.select_related("cluster").get(pk=owner.claim_id)
            publish(claim)
            if claim.cluster is not None:
                # The cluster's page lists its nodes.
                publish(claim.cluster)
        if owner.server_id:
            # The server's page and the lanes show the same step.
            Server.objects.filter(pk=owner.server_id).update(rev=F("rev") + 1)
            publish(Server.objects.get(pk=owner.server_id))
