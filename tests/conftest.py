"""The cast of every test, and fakes that begin empty."""

from __future__ import annotations

import sys

import pytest

from tests import make


@pytest.fixture(autouse=True)
def fresh_fakes(settings):
    """The fake drivers' worlds are class attributes: what one test left must not meet the next."""
    yield
    for kinds in settings.DRIVERS.values():
        module, _, name = kinds.get("fake", "").rpartition(".")
        if module in sys.modules:
            getattr(getattr(sys.modules[module], name), "worlds", {}).clear()


@pytest.fixture
def admin(db):
    return make.user("admin", "admin")


@pytest.fixture
def operator(db):
    return make.user("operator", "operator")


@pytest.fixture
def support(db):
    return make.user("support", "support")


@pytest.fixture
def auditor(db):
    return make.user("auditor", "auditor")


@pytest.fixture
def owner(db):
    """Owner of tenant `default`."""
    return make.user("owner", default="owner")


@pytest.fixture
def tenant_operator(db):
    """Operator of tenant `default`."""
    return make.user("tenant-operator", default="operator")


@pytest.fixture
def viewer(db):
    """Viewer of tenant `default`."""
    return make.user("viewer", default="viewer")


@pytest.fixture
def owner1(db):
    """Owner of `tenant1`: the stranger next door."""
    return make.user("owner1", tenant1="owner")


@pytest.fixture
def nobody(db):
    """Signed in, with no role anywhere."""
    return make.user("nobody")
