"""History is append-only: no row is removed, and none changes but by being sealed once."""

from __future__ import annotations

from django.db import migrations

FROZEN = (
    "id", "uid", "at", "actor", "kind", "object_uid", "object_name", "tenant_id", "verb", "message", "code", "data"
)
SQLITE_UPDATE = """
CREATE TRIGGER event_append_only_update BEFORE UPDATE ON gpucloud_event
WHEN OLD.position IS NOT NULL OR OLD.hash <> '' OR OLD.previous_hash <> ''
  OR NEW.position IS NULL OR length(NEW.hash) <> 64 OR length(NEW.previous_hash) <> 64
  OR {changed}
BEGIN
  SELECT RAISE(ABORT, 'history is append-only: a row is sealed once and never changed');
END
"""
SQLITE_DELETE = """
CREATE TRIGGER event_append_only_delete BEFORE DELETE ON gpucloud_event
BEGIN
  SELECT RAISE(ABORT, 'history is append-only: no row is removed');
END
"""
POSTGRES = """
CREATE FUNCTION event_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'history is append-only: no row is removed' USING ERRCODE = 'check_violation';
  END IF;
  IF OLD.position IS NOT NULL OR OLD.hash <> '' OR OLD.previous_hash <> ''
    OR NEW.position IS NULL OR length(NEW.hash) <> 64 OR length(NEW.previous_hash) <> 64
    OR {changed}
  THEN
    RAISE EXCEPTION 'history is append-only: a row is sealed once and never changed'
      USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER event_append_only BEFORE UPDATE OR DELETE ON gpucloud_event
  FOR EACH ROW EXECUTE FUNCTION event_append_only();
"""


def _changed(word: str) -> str:
    return " OR ".join(f'OLD."{column}" {word} NEW."{column}"' for column in FROZEN)


def lay(apps, editor) -> None:  # type: ignore[no-untyped-def]
    if editor.connection.vendor == "postgresql":
        editor.execute(POSTGRES.format(changed=_changed("IS DISTINCT FROM")))
        return
    editor.execute(SQLITE_UPDATE.format(changed=_changed("IS NOT")))
    editor.execute(SQLITE_DELETE)


def lift(apps, editor) -> None:  # type: ignore[no-untyped-def]
    if editor.connection.vendor == "postgresql":
        editor.execute("DROP TRIGGER event_append_only ON gpucloud_event")
        editor.execute("DROP FUNCTION event_append_only()")
        return
    editor.execute("DROP TRIGGER event_append_only_update")
    editor.execute("DROP TRIGGER event_append_only_delete")


class Migration(migrations.Migration):
    dependencies = [("gpucloud", "0002_initial")]
    operations = [migrations.RunPython(lay, lift)]
