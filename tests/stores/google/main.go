// A store with the interfaces of Google Cloud Storage, on the address that it is given.
//
// fake-gcs-server answers the JSON interface, which Hadoop uses. Python's client has the XML interface: its
// requests to write and to copy are turned into those of JSON, and lists are cut to what was asked for.
package main

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/fsouza/fake-gcs-server/fakestorage"
)

func main() {
	address := os.Args[1]
	server, err := fakestorage.NewServerWithOptions(fakestorage.Options{
		NoListener: true, PublicHost: address, ExternalURL: "http://" + address,
	})
	if err != nil {
		panic(err)
	}
	panic(http.ListenAndServe(address, withXML(server.HTTPHandler())))
}

func withXML(store http.Handler) http.Handler {
	return http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		bucket, key, _ := strings.Cut(strings.TrimPrefix(request.URL.EscapedPath(), "/"), "/")
		if request.URL.Query().Get("list-type") == "2" {
			list(answer, request, store)
			return
		}
		if request.Method != http.MethodPut || key == "" || bucket == "storage" || bucket == "upload" {
			store.ServeHTTP(answer, request)
			return
		}
		name, _ := url.PathUnescape(key)
		target := "/upload/storage/v1/b/" + bucket + "/o?uploadType=media&name=" + url.QueryEscape(name)
		if source := request.Header.Get("X-Goog-Copy-Source"); source != "" {
			from, copied, _ := strings.Cut(source, "/")
			target = "/storage/v1/b/" + from + "/o/" + copied + "/rewriteTo/b/" + bucket + "/o/" + key + "?"
		}
		if generation := request.Header.Get("X-Goog-If-Generation-Match"); generation != "" {
			target += "&ifGenerationMatch=" + generation
		}
		inner := httptest.NewRequest(http.MethodPost, target, request.Body)
		inner.Host = request.Host
		found := httptest.NewRecorder()
		store.ServeHTTP(found, inner)
		send(answer, found)
	})
}

// list answers with the objects whose names follow `start-after`, which fake-gcs-server ignores.
func list(answer http.ResponseWriter, request *http.Request, store http.Handler) {
	found := httptest.NewRecorder()
	store.ServeHTTP(found, request)
	var all fakestorage.ListBucketResult
	if xml.Unmarshal(found.Body.Bytes(), &all) != nil {
		answer.WriteHeader(http.StatusNotFound)
		_, _ = answer.Write([]byte("<Error><Code>NoSuchBucket</Code></Error>"))
		return
	}
	after := request.URL.Query().Get("start-after")
	all.Contents = slices.DeleteFunc(all.Contents, func(each fakestorage.Contents) bool { return each.Key <= after })
	content, _ := xml.Marshal(all)
	answer.Header().Set("Content-Type", "application/xml")
	_, _ = answer.Write(content)
}

// send answers with the tag and the generation of the object that was written.
func send(answer http.ResponseWriter, found *httptest.ResponseRecorder) {
	var object struct{ Etag, Generation string }
	_ = json.Unmarshal(found.Body.Bytes(), &object)
	answer.Header().Set("ETag", "\""+object.Etag+"\"")
	answer.Header().Set("X-Goog-Generation", object.Generation)
	answer.WriteHeader(found.Code)
	if found.Code >= http.StatusBadRequest {
		_, _ = answer.Write(found.Body.Bytes())
	}
}
