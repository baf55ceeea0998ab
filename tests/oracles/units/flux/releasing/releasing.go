// Package releasing hands out helm-controller's own post-rendering, which is internal to it.
package releasing

import (
	"helm.sh/helm/v4/pkg/postrenderer"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/helm-controller/internal/postrender"
)

// PostRenderer does to a release's text what its HelmRelease asks for.
func PostRenderer(release *helmv2.HelmRelease) postrenderer.PostRenderer {
	return postrender.BuildPostRenderers(release)
}
