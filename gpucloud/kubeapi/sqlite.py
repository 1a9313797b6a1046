"""A Store that writes through to SQLite before it answers, so kill -9 loses nothing."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from gpucloud.kubeapi.errors import ApiError
from gpucloud.kubeapi.store import WINDOW, Event, Key, MemoryStore

SCHEMA = """
CREATE TABLE IF NOT EXISTS objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    revision INTEGER PRIMARY KEY, type TEXT NOT NULL, resource TEXT NOT NULL,
    namespace TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, previous TEXT
);
"""


class SqliteStore(MemoryStore):
    """Serves from memory and keeps objects and watch window in one SQLite file."""

    def __init__(self, path: Path, window: int = WINDOW) -> None:
        super().__init__(window)
        self._db = sqlite3.connect(path, isolation_level=None)
        # With WAL a commit is in the kernel before it returns: it survives the death of the
        # process, which is what the lab promises. It need not survive a power cut.
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(SCHEMA)
        self._load()

    def close(self) -> None:
        self._db.close()

    def _load(self) -> None:
        rows = self._db.execute("SELECT resource, namespace, name, body FROM objects")
        for resource, namespace, name, body in rows:
            self._objects.setdefault(resource, {})[namespace, name] = json.loads(body)
        log = self._db.execute("SELECT * FROM events ORDER BY revision").fetchall()
        for revision, type_, resource, namespace, name, body, previous in log:
            key = Key(resource, namespace, name)
            before = json.loads(previous) if previous else None
            self._log.append(Event(revision, type_, key, json.loads(body), before))
        if self._log:
            self._revision = self._log[-1].revision
            self._oldest = self._log[0].revision - 1

    def _keep(self, event: Event) -> None:
        try:
            self._write(event)
        except sqlite3.Error as error:  # closed, or the disk is full: the write did not happen
            raise ApiError(503, "ServiceUnavailable", f"the write was not kept: {error}") from error

    def _write(self, event: Event) -> None:
        body = json.dumps(event.object)
        previous = json.dumps(event.previous) if event.previous else None
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)",
                (event.revision, event.type, *event.key, body, previous),
            )
            if event.type == "DELETED":
                self._db.execute(
                    "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?",
                    event.key,
                )
            else:
                self._db.execute(
                    "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)", (*event.key, body)
                )
            self._db.execute(
                "DELETE FROM events WHERE revision <= ?", (event.revision - self._window,)
            )
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")
