"""The substitution language of Flux: `${name}`, and what may stand behind the name."""
