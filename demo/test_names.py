"""xmltodict issue 377: a key of the input can end the tag it should only name.

The demo puts this file into the package's tests before the agent starts.
"""

import pytest
from xmltodict import parse, unparse

HOSTILE = "name><admin>yes</admin"


def test_an_element_name_cannot_end_its_tag():
    with pytest.raises(ValueError):
        unparse({"user": {HOSTILE: "x"}})


def test_an_attribute_name_cannot_end_its_tag():
    with pytest.raises(ValueError):
        unparse({"user": {"@" + HOSTILE: "x"}})


def test_a_namespace_prefix_cannot_end_its_tag():
    with pytest.raises(ValueError):
        unparse({"user": {"@xmlns": {HOSTILE: "http://ns.example/"}}})


def test_markup_in_values_is_escaped_as_before():
    document = {"user": {"@role": "<none>", "#text": "a < b"}}
    assert parse(unparse(document)) == document
