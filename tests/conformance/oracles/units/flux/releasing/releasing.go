// Package releasing hands out what is internal to helm-controller: its post-rendering, its names.
package releasing

import (
	"helm.sh/helm/v4/pkg/postrenderer"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/helm-controller/internal/postrender"
	"github.com/fluxcd/helm-controller/internal/release"
)

// PostRenderer does to a release's text what its HelmRelease asks for.
func PostRenderer(wanted *helmv2.HelmRelease) postrenderer.PostRenderer {
	return postrender.BuildPostRenderers(wanted)
}

// Name is what the release is called, cut where it is too long.
func Name(wanted *helmv2.HelmRelease) string {
	return release.ShortenName(wanted.GetReleaseName())
}
