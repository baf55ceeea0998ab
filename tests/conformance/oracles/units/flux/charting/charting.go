// Package charting makes charts from a repository as source-controller does, whose builder is
// internal to it.
package charting

import (
	"context"

	"github.com/fluxcd/source-controller/internal/helm/chart"
)

// Build packs the chart at a path below the root, with other default values where files are given.
func Build(ctx context.Context, root, path, archive string, valuesFiles []string, ignoreMissing bool) error {
	_, err := chart.NewLocalBuilder(chart.NewDependencyManager()).Build(
		ctx, chart.LocalReference{WorkDir: root, Path: path}, archive,
		chart.BuildOptions{ValuesFiles: valuesFiles, IgnoreMissingValuesFiles: ignoreMissing},
	)
	return err
}
