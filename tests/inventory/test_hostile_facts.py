"""What a BMC says is kept whole but harmless: it fits its columns on every database."""

from __future__ import annotations

import pytest

from gpucloud.drivers import DriverError, Progress
from inventory.drivers import DriveSeen, GpuSeen, Inspection
from inventory.models import Drive, Gpu, Server
from provisioning.services import inspections
from tests import make

BAD = "<script>\0\u202e\ud800\x07" + "A" * 600


def test_facts_of_any_length_and_letters_are_kept(db):
    server = make.server()
    gpu = GpuSeen(BAD, BAD, BAD, BAD, 2**70)
    drive = DriveSeen(BAD, BAD, -1, BAD, BAD, BAD)
    inspections.keep(
        server,
        Inspection(
            BAD, BAD, BAD, BAD, BAD, BAD, "off", BAD, ({"model": BAD},), 1.0, (gpu,), (), (drive,)
        ),
    )
    for model in (Server, Gpu, Drive):
        row = model.objects.last()
        row.full_clean(exclude=["rack", "connection", "problem", "facts"], validate_unique=False)
        assert row.model.startswith("<script>AAA") and "\u202e" not in row.model
    assert "\0" not in str(Server.objects.last().facts)


@pytest.mark.parametrize("text", ["a\0b", "a\u202eb", "a\x1bb", "a\ud800b"])
def test_what_engines_say_is_kept_without_harmful_characters(text):
    assert Progress(False, text, evidence={"said": [text]}).detail == "ab"
    assert Progress(False, "", evidence={"said": [text]}).evidence == {"said": ["ab"]}
    assert DriverError(text, "BMC_ERROR").message == "ab"
