"""Join material: one bootstrap token per claim, extended while it may be needed, deleted at Join
or failure.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models.functions import Now
from django.utils import timezone

from gpucloud import vault
from gpucloud.drivers import DriverError
from provisioning.models import BootstrapToken, NodeClaim
from tenants.drivers import JoinSpec
from tenants.services.access import access_of, cluster_spec, driver_of

EXTEND_BELOW = timedelta(minutes=20)


def make_join_data(claim: NodeClaim) -> None:
    """Have the control plane make the claim's token, and keep the user data that holds it in the
    vault.
    """
    cluster = claim.cluster
    assert cluster is not None and claim.server is not None
    join = JoinSpec(
        claim_uid=str(claim.uid),
        node_name=claim.node_name or claim.server.name,
        labels=claim.labels,
        taints=tuple(claim.taints),
    )
    data = driver_of(cluster).join_data(cluster_spec(cluster), join, access_of(cluster))
    vault.put("claim", claim.uid, "user_data", data.user_data)
    BootstrapToken.objects.update_or_create(
        claim=claim, defaults={"token_id": data.token_id, "expires": data.expires, "revoked": None}
    )


def keep_alive(claim: NodeClaim) -> None:
    """Extend the token's expiry while the claim is on its way."""
    token = BootstrapToken.objects.filter(claim=claim, revoked=None).first()
    if token is None or claim.cluster is None or token.expires - timezone.now() > EXTEND_BELOW:
        return
    driver_of(claim.cluster).extend(
        cluster_spec(claim.cluster), str(claim.uid), access_of(claim.cluster)
    )
    BootstrapToken.objects.filter(pk=token.pk).update(expires=timezone.now() + timedelta(hours=1))


def revoke(claim: NodeClaim, *, must: bool = True) -> None:
    """Delete the claim's token in the tenant's API;

    with must=False an API that does not answer is let be.
    """
    token = BootstrapToken.objects.filter(claim=claim, revoked=None).first()
    vault.drop("claim", claim.uid, "user_data")
    if token is None or claim.cluster is None:
        return
    try:
        driver_of(claim.cluster).revoke(
            cluster_spec(claim.cluster), str(claim.uid), access_of(claim.cluster)
        )
    except DriverError:
        if must:
            raise
        return
    BootstrapToken.objects.filter(pk=token.pk).update(revoked=Now())
