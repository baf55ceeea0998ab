// Opens what is sealed, with the code of sealed-secrets itself.
//
// Reads lines of {"key": PEM, "label": "...", "sealed": base64} and writes {"opened": "..."} or
// {"refused": "..."} for each.
package main

import (
	"bufio"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"os"

	"github.com/bitnami-labs/sealed-secrets/pkg/crypto"
	"k8s.io/client-go/util/keyutil"
)

type question struct {
	Key    string `json:"key"`
	Label  string `json:"label"`
	Sealed string `json:"sealed"`
}

type answer struct {
	Opened  string `json:"opened,omitempty"`
	Refused string `json:"refused,omitempty"`
}

func open(asked question) (string, error) {
	key, err := keyutil.ParsePrivateKeyPEM([]byte(asked.Key))
	if err != nil {
		return "", err
	}
	sealed, err := base64.StdEncoding.DecodeString(asked.Sealed)
	if err != nil {
		return "", err
	}
	keys := map[string]*rsa.PrivateKey{"own": key.(*rsa.PrivateKey)}
	opened, err := crypto.HybridDecrypt(rand.Reader, keys, sealed, []byte(asked.Label))
	return string(opened), err
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		opened, err := open(asked)
		told := answer{Opened: opened}
		if err != nil {
			told = answer{Refused: err.Error()}
		}
		if err := answers.Encode(told); err != nil {
			panic(err)
		}
	}
}
