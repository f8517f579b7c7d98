// A browser shows a notebook as JSON instead of saving it, unless the link carries `download`.
document.addEventListener("DOMContentLoaded", () => {
  for (const link of document.querySelectorAll('a[href$=".ipynb"]')) {
    link.setAttribute("download", link.getAttribute("href").split("/").pop());
  }
});
