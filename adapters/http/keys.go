package http

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"leapview/app"
	"leapview/domain/access"
	"leapview/domain/serving"
)

// keyDoc is a key as it is listed: all but the key itself.
type keyDoc struct {
	ID        access.KeyID `json:"id"`
	Principal string       `json:"principal"`
	Role      access.Role  `json:"role"`
	// Workspace is null for a key that is for all of them.
	Workspace *serving.Workspace `json:"workspace"`
	Label     string             `json:"label"`
	CreatedAt time.Time          `json:"created_at"`
	CreatedBy string             `json:"created_by"`
	// ExpiresAt is null for a key that does not expire, RevokedAt for one that was not revoked, UsedAt for one that was not used since
	// the node's start.
	ExpiresAt *time.Time `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at"`
	UsedAt    *time.Time `json:"used_at"`
}

// createdKeyDoc is a new key with its text, which is told this once.
type createdKeyDoc struct {
	Key string `json:"key"`
	keyDoc
}

func keyDocOf(k app.KeyUse) keyDoc {
	return keyDoc{k.ID, k.Principal().Name, k.Grant.Role, unlessZero(k.Grant.Workspace), k.Label, k.CreatedAt.UTC(), k.CreatedBy,
		unlessZero(k.ExpiresAt.UTC()), unlessZero(k.RevokedAt.UTC()), unlessZero(k.UsedAt)}
}

// listKeys is GET /v1/keys.
func (r *routes) listKeys(c echo.Context) error {
	docs := []keyDoc{}
	for _, k := range r.keyring.List() {
		docs = append(docs, keyDocOf(k))
	}
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, map[string][]keyDoc{"keys": docs})
}

// createKey is POST /v1/keys.
func (r *routes) createKey(c echo.Context) error {
	given := map[string]string{}
	err := readObject(c, r.maxBody, func(d *json.Decoder, key string) (err error) {
		switch key {
		case "role", "workspace", "label", "expires":
			given[key], err = readString(d, `"`+key+`"`)
		default:
			err = unknownKey("the body", key, "role", "workspace", "label", "expires")
		}
		return err
	})
	if err != nil {
		return err
	}
	spec := access.Spec{Label: given["label"]}
	if spec.Grant.Role, err = access.ParseRole(given["role"]); err != nil {
		return err
	}
	if name, limited := given["workspace"]; limited {
		if spec.Grant.Workspace, err = serving.ParseWorkspace(name); err != nil {
			return err
		}
	}
	if spec.Lifetime, err = access.ParseLifetime(given["expires"]); err != nil {
		return err
	}
	key, secret, err := r.keyring.Create(c.Request().Context(), callerOf(c), spec)
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, "/v1/keys/"+string(key.ID))
	return sendJSON(c, http.StatusCreated, echo.MIMEApplicationJSON, createdKeyDoc{secret.Reveal(), keyDocOf(app.KeyUse{Key: key})})
}

// revokeKey is DELETE /v1/keys/{key}. Its answer is the key; twice is once.
func (r *routes) revokeKey(c echo.Context) error {
	id, err := access.ParseKeyID(c.Param("key"))
	if err != nil {
		return err
	}
	key, err := r.keyring.Revoke(c.Request().Context(), callerOf(c), id)
	if err != nil {
		return err
	}
	return sendJSON(c, http.StatusOK, echo.MIMEApplicationJSON, keyDocOf(key))
}
