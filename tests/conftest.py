"""The cast of every test, fakes that begin empty, and tables that can be emptied."""

from __future__ import annotations

import sys

import pytest
from django.db.backends.sqlite3.base import DatabaseOperations

from tests import make


@pytest.fixture(scope="session", autouse=True)
def tables_can_be_emptied_between_tests():
    """History refuses DELETE, by which SQLite is emptied; PostgreSQL uses TRUNCATE."""
    original = DatabaseOperations.execute_sql_flush

    def flush(self, sql_list):
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            triggers = cursor.fetchall()
            for name, _ in triggers:
                cursor.execute(f"DROP TRIGGER {name}")
            original(self, sql_list)
            for _, sql in triggers:
                cursor.execute(sql)

    DatabaseOperations.execute_sql_flush = flush
    yield
    DatabaseOperations.execute_sql_flush = original


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
