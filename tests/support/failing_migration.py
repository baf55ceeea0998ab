"""A migration Job that fails."""

from __future__ import annotations

MIGRATION = """\
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  template:
    spec:
      restartPolicy: OnFailure
      containers: [{name: migrate, image: "shop/migrate:1"}]
"""
