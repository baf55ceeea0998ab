"""Without libyaml nothing is read, and that is an error."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from tidegate.documents import events
from tidegate.errors import TidegateError


def test_a_pyyaml_without_libyaml_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml._yaml", None)
    spec = importlib.util.spec_from_file_location("events_again", events.__file__)
    assert spec is not None
    assert spec.loader is not None
    again = importlib.util.module_from_spec(spec)

    with pytest.raises(TidegateError) as caught:
        spec.loader.exec_module(again)

    assert caught.value.code == "documents.libyaml"
    assert "pip install" in caught.value.hint
