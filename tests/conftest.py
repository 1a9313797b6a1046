"""What every test may need: emptying the tables although some of them refuse to forget."""

from __future__ import annotations

import pytest
from django.db.backends.sqlite3.operations import DatabaseOperations


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
