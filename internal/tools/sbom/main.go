// Command sbom writes the modules of a Go program as CycloneDX in JSON. It reads them
// from the program, in which the linker has stored them.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

type (
	bom struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type    string `json:"type"`
		Ref     string `json:"bom-ref"`
		Name    string `json:"name"`
		Version string `json:"version"`
		PURL    string `json:"purl"`
		Hashes  []hash `json:"hashes,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom PROGRAM DOCUMENT")
		os.Exit(64)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(program, document string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	main := module("application", &info.Main)
	main.Name = filepath.Base(info.Path)
	main.Hashes = []hash{{"SHA-256", fmt.Sprintf("%x", sha256.Sum256(text))}}
	b := bom{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{main}}
	all := dependency{Ref: main.Ref, On: []string{}}
	add := func(c component) {
		b.Components = append(b.Components, c)
		all.On = append(all.On, c.Ref)
	}
	add(module("library", &debug.Module{Path: "std", Version: info.GoVersion}))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(module("library", m))
	}
	b.Dependencies = []dependency{all}
	out, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(document, append(out, '\n'), 0o644)
}

func module(kind string, m *debug.Module) component {
	purl := fmt.Sprintf("pkg:golang/%s@%s", m.Path, m.Version)
	return component{Type: kind, Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
}
