"""A BMC's address is one thing however it is written, and what is none is refused at the form."""

from __future__ import annotations

import pytest

from gpucloud.problems import Invalid
from inventory.drivers.address import Address
from inventory.services import servers

SAME = [
    "2001:db8::10",
    "[2001:db8::10]",
    "https://[2001:DB8:0:0:0:0:0:10]/redfish/v1",
    "redfish+https://[2001:db8::10]",
]
NONE = [
    "[2001:db8::zz]",
    "fe80::1%eth0",
    "https://[fe80::1%25eth0]",
    "https://[::1",
    "https://127.0.0.1:99999",
    "javascript:x",
    "<script>alert(1)</script>",
    "https://a b",
    "https://",
]


def enroll(name, address):
    return servers.enroll("admin", name, bmc={"driver": "redfish", "address": address})


@pytest.mark.parametrize("text", SAME)
def test_ipv6_carries_brackets(text):
    assert Address.parse(text).root == "https://[2001:db8::10]"


def test_the_last_group_of_an_address_is_no_port():
    assert Address.parse("2001:db8::10:443").root == "https://[2001:db8::10:443]"
    assert Address.parse("[2001:db8::10]:8443").root == "https://[2001:db8::10]:8443"


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_address_is_refused(text, db):
    with pytest.raises(ValueError):
        Address.parse(text)
    with pytest.raises(Invalid) as refused:
        enroll("x1", text)
    assert "bmc.address" in refused.value.fields


@pytest.mark.parametrize("text", SAME)
def test_a_bmc_written_otherwise_is_found_to_be_taken(text, db):
    enroll("x1", "https://[2001:db8::10]/")
    with pytest.raises(Invalid, match="This is the BMC of x1"):
        enroll("x2", text)


def test_two_systems_behind_one_bmc_are_two_servers(db):
    enroll("x1", "https://bmc.example.com/redfish/v1/Systems/1")
    enroll("x2", "https://bmc.example.com/redfish/v1/Systems/2")
    with pytest.raises(Invalid):
        enroll("x3", "BMC.example.com/redfish/v1/Systems/2/")
