"""The rules, by what they are about. A module enters its rules when it is imported."""
