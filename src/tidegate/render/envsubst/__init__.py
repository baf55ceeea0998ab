"""The substitution language of Flux: `${name}`, and what may stand behind the name.

It looks like bash and is not. Every rule was asked of Flux' own library; tests/data/envsubst holds
its answers.
"""

from tidegate.render.envsubst.template import SubstitutionError, UnsetVariableError, expand

__all__ = ["SubstitutionError", "UnsetVariableError", "expand"]
