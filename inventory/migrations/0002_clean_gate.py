"""The clean gate's second half: no server becomes available without a passing record that covers its drives."""

from __future__ import annotations

from django.db import migrations

SQLITE = """
CREATE TRIGGER server_clean_gate_{event} BEFORE {EVENT} ON inventory_server
WHEN NEW.state = 'available' {changed}
BEGIN
  SELECT RAISE(ABORT, 'clean gate: no passing wipe record covers the drives of this tenancy')
  WHERE NOT EXISTS (
    SELECT 1 FROM inventory_wiperecord w
    WHERE w.server_id = NEW.id AND w.tenancy = NEW.tenancy AND w.passed
      AND NOT EXISTS (
        SELECT serial FROM inventory_drive WHERE server_id = NEW.id
        EXCEPT SELECT value FROM json_each(w.drive_serials))
      AND NOT EXISTS (
        SELECT value FROM json_each(w.drive_serials)
        EXCEPT SELECT serial FROM inventory_drive WHERE server_id = NEW.id));
END;
"""
SQLITE_FROZEN = """
CREATE TRIGGER wiperecord_frozen_{event} BEFORE {EVENT} ON inventory_wiperecord
BEGIN
  SELECT RAISE(ABORT, 'a wipe record is never changed or removed');
END;
"""
CHANGED = "AND (OLD.state <> 'available' OR OLD.tenancy <> NEW.tenancy OR OLD.clean_tenancy <> NEW.clean_tenancy)"
POSTGRES = """
CREATE FUNCTION server_clean_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state = 'available' AND (TG_OP = 'INSERT' OR OLD.state <> 'available'
      OR OLD.tenancy <> NEW.tenancy OR OLD.clean_tenancy IS DISTINCT FROM NEW.clean_tenancy)
    AND NOT EXISTS (
      SELECT 1 FROM inventory_wiperecord w
      WHERE w.server_id = NEW.id AND w.tenancy = NEW.tenancy AND w.passed
        AND NOT EXISTS (
          SELECT serial::text FROM inventory_drive WHERE server_id = NEW.id
          EXCEPT SELECT jsonb_array_elements_text(w.drive_serials))
        AND NOT EXISTS (
          SELECT jsonb_array_elements_text(w.drive_serials)
          EXCEPT SELECT serial::text FROM inventory_drive WHERE server_id = NEW.id))
  THEN
    RAISE EXCEPTION 'clean gate: no passing wipe record covers the drives of this tenancy'
      USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER server_clean_gate BEFORE INSERT OR UPDATE ON inventory_server
  FOR EACH ROW EXECUTE FUNCTION server_clean_gate();
CREATE FUNCTION wiperecord_frozen() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a wipe record is never changed or removed' USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER wiperecord_frozen BEFORE UPDATE OR DELETE ON inventory_wiperecord
  FOR EACH ROW EXECUTE FUNCTION wiperecord_frozen();
"""


def lay(apps, editor) -> None:  # type: ignore[no-untyped-def]
    if editor.connection.vendor == "postgresql":
        editor.execute(POSTGRES)
        return
    for event in ("insert", "update"):
        changed = CHANGED if event == "update" else ""
        editor.execute(SQLITE.format(event=event, EVENT=event.upper(), changed=changed))
    for event in ("update", "delete"):
        editor.execute(SQLITE_FROZEN.format(event=event, EVENT=event.upper()))


def lift(apps, editor) -> None:  # type: ignore[no-untyped-def]
    if editor.connection.vendor == "postgresql":
        editor.execute("DROP TRIGGER server_clean_gate ON inventory_server")
        editor.execute("DROP FUNCTION server_clean_gate()")
        editor.execute("DROP TRIGGER wiperecord_frozen ON inventory_wiperecord")
        editor.execute("DROP FUNCTION wiperecord_frozen()")
        return
    for event in ("insert", "update"):
        editor.execute(f"DROP TRIGGER server_clean_gate_{event}")
    for event in ("update", "delete"):
        editor.execute(f"DROP TRIGGER wiperecord_frozen_{event}")


class Migration(migrations.Migration):
    dependencies = [("inventory", "0001_initial")]
    operations = [migrations.RunPython(lay, lift)]
