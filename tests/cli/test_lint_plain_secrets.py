"""`tidegate lint` reports secret values in Git, and no settings (ORD044)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.in_process_command import run_in_process
from tests.support.manifest_texts import application
from tests.support.rule_pages import write_files

SECRET = """apiVersion: v1
kind: Secret
metadata: {{name: db, namespace: shop}}
stringData: {{{key}: xoh5ohTh}}
"""


@pytest.mark.parametrize(
    ("key", "count"),
    [("DB_PASSWORD", 1), ("token", 1), ("AWS_REGION", 0), ("AUTHENTIK_LOG_LEVEL", 0), ("port", 0)],
)
def test_a_key_that_is_named_like_a_setting_is_no_secret(
    key: str, count: int, tmp_path: Path
) -> None:
    write_files(tmp_path, {"app.yaml": application(), "shop/db.yaml": SECRET.format(key=key)})

    ran = run_in_process(tmp_path, os.environ, ("lint", "--offline", "-o", "json", "."))

    codes = [finding["code"] for finding in json.loads(ran.stdout)["findings"]]
    assert codes.count("ORD044") == count


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ("https://login.example.com/token", 0),
        ("https://me:xoh5ohTh@db.shop.internal/shop", 1),
        ("aes-xts-plain64", 0),
        ("argon2id", 0),
    ],
)
def test_an_address_or_an_algorithm_is_no_secret(value: str, count: int, tmp_path: Path) -> None:
    secret = SECRET.format(key="TOKEN").replace("xoh5ohTh", f"'{value}'")
    write_files(tmp_path, {"app.yaml": application(), "shop/db.yaml": secret})

    ran = run_in_process(tmp_path, os.environ, ("lint", "--offline", "-o", "json", "."))

    codes = [finding["code"] for finding in json.loads(ran.stdout)["findings"]]
    assert codes.count("ORD044") == count
