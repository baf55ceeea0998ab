"""The oracle for health rules in Lua: Argo CD's own reading of argocd-cm, and its own Lua."""
