"""Races are proved with real threads on real PostgreSQL, never on SQLite, which has one writer."""

from __future__ import annotations

import pytest
from django.db import connection


@pytest.fixture(autouse=True)
def on_postgresql(transactional_db):
    assert connection.vendor == "postgresql", "Set DATABASE_URL to a PostgreSQL to run the races."


@pytest.fixture
def without_index(on_postgresql):
    """Take unique indexes away, as a careless migration would; they are put back afterwards."""
    taken = []

    def drop(*names):
        with connection.cursor() as cursor:
            for name in names:
                cursor.execute(
                    "SELECT indexdef, tablename FROM pg_indexes WHERE indexname = %s", [name]
                )
                definition, table = cursor.fetchone()
                taken.append((definition, table))
                cursor.execute(f'DROP INDEX "{name}"')

    yield drop
    with connection.cursor() as cursor:
        for definition, table in taken:
            cursor.execute(f'TRUNCATE "{table}" CASCADE')
            cursor.execute(definition)
