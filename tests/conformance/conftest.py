"""The marker that says which cases of Argo CD or Flux a test covers."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "case(*numbers): the cases that a test covers")
