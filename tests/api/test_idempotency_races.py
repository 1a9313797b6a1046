"""The same create sent many times at once is carried out once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from gpucloud.models import Event
from tenants.models import Tenant
from tests import make


@pytest.mark.races
@pytest.mark.django_db(transaction=True)
def test_one_create_of_many_at_once_with_one_key(client_of):
    token = client_of(make.user("admin", "admin"))

    def send(_):
        try:
            answer = token.post("tenants/", {"name": "acme"}, HTTP_IDEMPOTENCY_KEY="k")
            return answer.status_code, answer.json().get("uid")
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(16)))
    made = {uid for status, uid in answers if status == 201}
    assert made == {str(Tenant.objects.get().uid)}
    assert {status for status, _ in answers} <= {201, 409}
    assert Event.objects.filter(kind="tenant", verb="create").count() == 1
