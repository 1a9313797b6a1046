"""The shape of the code: who may import whom, who may write, how long a thing may be."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.template import engines
from django.template.loader import get_template

ROOT = Path(settings.BASE_DIR)
# Upwards in this order nobody imports: each sees itself and those after it.
ARROW = ("provisioning", "tenants", "network", "inventory", "gpucloud")
APPS = ARROW[:-1]
# Files and folders of an app that the arrow binds; its doors may call the services of any app.
BOUND = ("models", "lifecycle", "services", "plans", "steps", "select", "reconcile", "spec")
# Parts of gpucloud that put the apps together; the others know none of them.
WIRING = ("urls", "celery", "api", "asgi", "views", "views_ui", "views_activity", "links", "policy")
WIRING += ("finding", "navigation", "settings")
# Files that may write to the database.
WRITERS = ("services", "steps", "plans", "reconcile", "agents", "engine", "mirror", "watcher")
WRITERS += ("sweep", "demo", "seed_demo", "lifecycle", "history", "vault", "migrations", "models")
WRITERS += ("watch", "idempotency", "management")
# Doors that keep a mark of their own: when a token was used last, which theme a person likes.
WRITERS += ("auth", "views_ui")
FILE_LINES, FUNCTION_LINES = 400, 60


@cache
def sources() -> tuple[Path, ...]:
    """Every Python file of ours that git knows or would take, as paths from the root."""
    said = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return tuple(Path(line) for line in said.splitlines() if (ROOT / line).exists())


def product() -> list[Path]:
    return [path for path in sources() if path.parts[0] in ARROW and "lab" not in path.parts]


def code() -> list[Path]:
    """Everything but tests and migrations."""
    return [
        path for path in sources() if path.parts[0] != "tests" and "migrations" not in path.parts
    ]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(), str(path))


def imports(path: Path) -> set[str]:
    """Names of the modules that a file imports, anywhere in it; for typing only does not count."""
    found = set()
    for node in _walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _walk(node: ast.AST):
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from _walk(child)


def part(path: Path) -> str:
    """The role of a file in its app: the name of its file or folder just below the app."""
    return path.parts[1].removesuffix(".py") if len(path.parts) > 1 else ""


def apps_of(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names} & set(ARROW)


# -- who imports whom


def against_the_arrow(path: Path) -> set[str]:
    allowed = ARROW[ARROW.index(path.parts[0]) :]
    return apps_of(imports(path)) - set(allowed)


def test_models_services_plans_and_steps_import_only_along_the_arrow():
    bound = [path for path in product() if path.parts[0] in APPS and part(path) in BOUND]
    assert len(bound) > 20
    wrong = {str(path): against_the_arrow(path) for path in bound if against_the_arrow(path)}
    assert wrong == {}


def test_doors_call_services_of_other_apps_and_never_their_pages():
    for path in product():
        if path.parts[0] not in APPS:
            continue
        for name in imports(path):
            app, _, rest = name.partition(".")
            if app in APPS and app != path.parts[0]:
                assert rest.split(".")[0] not in ("views", "urls", "live"), (path, name)


def test_shared_modules_know_no_app():
    shared = [p for p in product() if p.parts[0] == "gpucloud" and part(p) not in WIRING]
    assert len(shared) > 30
    wrong = {str(p): apps_of(imports(p)) - {"gpucloud"} for p in shared}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_drivers_know_neither_models_nor_tasks_nor_the_database():
    drivers = [path for path in product() if part(path) == "drivers" and path.parts[0] in APPS]
    assert len(drivers) > 10
    for path in drivers:
        for name in imports(path):
            assert not name.startswith(("django.db", "celery", "gpucloud.celery")), (path, name)
            assert "models" not in name.split(".") and "tasks" not in name.split("."), (path, name)


def test_the_engine_speaks_to_owners_through_their_plans_only():
    for path in product():
        if path.parts[:2] == ("gpucloud", "engine"):
            assert apps_of(imports(path)) <= {"gpucloud"}, path


def test_the_lab_stands_alone():
    lab = [path for path in sources() if path.parts[:2] == ("gpucloud", "lab")]
    assert len(lab) > 20
    for path in lab:
        for name in imports(path):
            assert name.split(".")[0] not in (*APPS, "django"), (path, name)
            if name.startswith("gpucloud."):
                assert f"{name}.".startswith(("gpucloud.lab.", "gpucloud.kubeapi.")), (path, name)
    for path in code():
        if path.parts[:2] != ("gpucloud", "lab"):
            assert not [n for n in imports(path) if f"{n}.".startswith("gpucloud.lab.")], path


def test_the_kubernetes_core_knows_neither_lab_nor_django():
    for path in product():
        if path.parts[:2] == ("gpucloud", "kubeapi"):
            for name in imports(path):
                assert not name.startswith(("django", "gpucloud.lab", "gpucloud.models"))
                assert name.split(".")[0] not in APPS, (path, name)


def test_no_product_code_asks_whether_it_talks_to_the_lab():
    for path in product():
        if path.parts[:2] in (("gpucloud", "supervisor"), ("gpucloud", "settings.py")):
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, (ast.If, ast.IfExp, ast.While)):
                said = ast.unparse(node.test).lower()
                assert not re.search(r"\b(lab|lab_speed|is_lab|simulat\w*)\b", said), (path, said)


def test_nothing_happens_by_django_signals():
    for path in product():
        for name in imports(path):
            assert not name.startswith(("django.dispatch", "django.db.models.signals")), path
        assert path.name not in ("signals.py", "receivers.py")


# -- who writes

WRITES = ("create", "bulk_create", "update_or_create", "get_or_create", "bulk_update", "delete")


def writes(path: Path) -> list[str]:
    """Calls of a manager or query set that write; a best effort, since Python tells no types."""
    found = []
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        chain = ast.unparse(node.func.value)
        verb = node.func.attr
        many = ".objects" in chain or re.search(r"\b(rows|queryset)\b", chain)
        if (many and verb in (*WRITES, "update")) or (verb == "save" and not node.args):
            found.append(f"{node.lineno}: {chain}.{verb}")
    return found


def test_only_services_steps_and_the_engine_write():
    wrong = {}
    for path in product():
        role = {part(path), path.name.removesuffix(".py")}
        # What a driver saves is on its device: no driver knows the database.
        if not role & {*WRITERS, "drivers"}:
            found = [one for one in writes(path) if ".session" not in one]
            if found:
                wrong[str(path)] = found
    assert wrong == {}


def test_only_lifecycles_move_a_state():
    """A state column is named in `update` only where the guard is the point."""
    allowed = {
        "provisioning/steps/selecting.py",  # takes a server in one UPDATE
        "network/services/moves.py",  # attachments follow what was read
        "network/services/segments.py",
        "gpucloud/engine/advance.py",
        "gpucloud/engine/steps.py",
    }
    for path in product():
        if str(path) in allowed or "migrations" in path.parts or path.name == "lifecycle.py":
            continue
        for node in ast.walk(tree(path)):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "update"
                and ".objects" in ast.unparse(node.func.value)
            ):
                assert "state" not in {word.arg for word in node.keywords}, (path, node.lineno)


# -- what settings name


def named() -> list[str]:
    drivers = [path for kinds in settings.DRIVERS.values() for path in kinds.values()]
    return [*drivers, *settings.PLANS.values(), *settings.SWEEPS, *settings.WATCHES]


@pytest.mark.parametrize("path", named())
def test_what_settings_name_can_be_loaded(path):
    module, _, name = path.rpartition(".")
    assert callable(getattr(import_module(module), name))


@pytest.mark.parametrize("module", settings.LIVE_FRAGMENTS)
def test_live_fragments_can_be_loaded(module):
    assert import_module(module)


@pytest.mark.django_db
def test_no_migration_is_missing():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def templates() -> list[str]:
    folder = ROOT / "templates"
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.html"))


def test_every_template_can_be_loaded():
    assert engines.all() and len(templates()) > 10
    for name in templates():
        get_template(name)


def test_every_model_has_a_name_for_people():
    for app in ARROW:
        for model in apps.get_app_config(app).get_models():
            assert "__str__" in vars(model) or model.__name__ == "User", model


# -- how long and how named


def test_files_stay_short():
    long = {
        str(path): count
        for path in code()
        if (count := len((ROOT / path).read_text().splitlines())) > FILE_LINES
    }
    assert long == {}


def test_functions_stay_short():
    long = {}
    for path in code():
        for node in ast.walk(tree(path)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                count = (node.end_lineno or 0) - node.lineno + 1
                if count > FUNCTION_LINES:
                    long[f"{path}:{node.name}"] = count
    assert long == {}


def test_files_are_named_by_what_they_hold():
    for path in sources():
        assert path.name not in ("utils.py", "helpers.py", "managers.py", "signals.py"), path


def test_every_file_says_what_it_is_for():
    for path in code():
        if (ROOT / path).read_text().strip():
            assert ast.get_docstring(tree(path)), path


def test_nothing_is_left_to_be_done():
    for path in sources():
        if path.name == Path(__file__).name:
            continue
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            assert not re.search(r"#.*\b(TODO|FIXME|XXX|HACK)\b", line), (path, number)


# -- the tests of this test


def test_a_violation_is_found(tmp_path, monkeypatch):
    """Planted in a tree of its own: the walks must see what they are there to see."""
    wrong = tmp_path / "network" / "services" / "wrong.py"
    wrong.parent.mkdir(parents=True)
    wrong.write_text(
        "from provisioning.models import NodeClaim\n"
        "def f():\n    NodeClaim.objects.filter(pk=1).update(state='gone')\n"
    )
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    path = wrong.relative_to(tmp_path)
    assert against_the_arrow(path) == {"provisioning"}
    assert writes(path) == ["3: NodeClaim.objects.filter(pk=1).update"]
