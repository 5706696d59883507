// Shows the OpenAPI document beside this page. If the document names no server, requests go to where the page came
// from, also behind a proxy that serves the service under a path.
const spec = await (await fetch("openapi.json")).json();
spec.servers ??= [{ url: new URL(".", location.href).href.replace(/\/$/, "") }];
window.SwaggerUIBundle({
  spec,
  dom_id: "#swagger-ui",
  deepLinking: true,
  docExpansion: "none", // with all groups open a slow machine draws them for half a minute
  tryItOutEnabled: true,
  defaultModelsExpandDepth: 0,
});
