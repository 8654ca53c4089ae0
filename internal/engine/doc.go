// Package engine has what the client side of every backend needs.
package engine
