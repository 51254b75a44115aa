package http

import (
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/labstack/echo/v4"

	"leapview/domain/fail"
	"leapview/domain/plan"
	"leapview/domain/project"
	"leapview/domain/serving"
)

type deployedDoc struct {
	Workspace  serving.Workspace `json:"workspace"`
	Deployment deploymentDoc     `json:"deployment"`
	Models     int               `json:"models"`
	Endpoints  int               `json:"endpoints"`
}

// deploy is POST /v1/deployments, for local callers only: its body is a project bundle, and the query's source_root is an absolute
// path of this machine.
func (r *routes) deploy(c echo.Context) error {
	query, err := queryParams(c.Request().URL)
	if err != nil {
		return err
	}
	root := query["source_root"]
	if !filepath.IsAbs(root) || len(query) > 1 {
		return fail.New(fail.Invalid, "bad_source_root", "a deployment needs exactly the query parameter source_root, an absolute path; it is %q", root)
	}
	bundle, err := readBody(c, maxBundle, project.ArchiveTooLarge())
	if err != nil {
		return err
	}
	done, err := r.deployer.Deploy(c.Request().Context(), bundle, filepath.Clean(root), callerOf(c))
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, fmt.Sprintf("/v1/workspaces/%s/status", done.Workspace))
	return sendJSON(c, http.StatusCreated, echo.MIMEApplicationJSON,
		deployedDoc{done.Workspace, r.deploymentDoc(done.Deployment), done.Models, done.Endpoints})
}

type planDoc struct {
	Workspace serving.Workspace `json:"workspace"`
	Release   project.Digest    `json:"release"`
	// Active is the release that is served now, null when none is.
	Active  *project.Digest `json:"active"`
	Changes []changeDoc     `json:"changes"`
}

type changeDoc struct {
	Part    string      `json:"part"`
	Name    string      `json:"name"`
	Status  plan.Status `json:"status"`
	Reasons []string    `json:"reasons"`
}

// plan is POST /v1/plans, for local callers only: its body is a project bundle, and nothing is kept of it.
func (r *routes) plan(c echo.Context) error {
	bundle, err := readBody(c, maxBundle, project.ArchiveTooLarge())
	if err != nil {
		return err
	}
	p, err := r.deployer.Plan(c.Request().Context(), bundle)
	if err != nil {
		return err
	}
	doc := planDoc{p.Workspace, p.Release, unlessZero(p.Active), make([]changeDoc, len(p.Changes))}
	for i, x := range p.Changes {
		doc.Changes[i] = changeDoc{x.Part, x.Name, x.Status, append([]string{}, x.Reasons...)}
	}
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, doc)
}
