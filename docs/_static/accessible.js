// What the theme leaves out: whatever scrolls can be reached by keyboard, landmarks have names, overlays are for mice alone.
document.addEventListener("DOMContentLoaded", () => {
  const name = (selector, label) => document.querySelectorAll(selector).forEach(node => node.setAttribute("aria-label", label));
  name("aside.sidebar-drawer", "All pages");
  name("aside.toc-drawer", "On this page");
  name(".content-icon-container", "Page tools");
  document.querySelectorAll(".content-icon-container").forEach(node => node.setAttribute("role", "region"));
  document.querySelectorAll("label.overlay").forEach(node => node.setAttribute("aria-hidden", "true"));
  const reach = () => document.querySelectorAll(".highlight > pre, .table-wrapper, .math-wrapper, div.math").forEach(node => {
    if (node.scrollWidth > node.clientWidth) node.setAttribute("tabindex", "0");
    else node.removeAttribute("tabindex");
  });
  reach();
  addEventListener("resize", reach);
});
