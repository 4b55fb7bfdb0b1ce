// What the model was trained with: 48 by 192 pixels, blue first, values from -1 to 1, the line's own ratio kept and zeros to
// its right. Frees the picture.
const HEIGHT = 48;
const WIDTH = 192;

export function prepare(image) {
  const width = Math.min(WIDTH, Math.ceil((HEIGHT * image.width) / image.height));
  const context = new OffscreenCanvas(width, HEIGHT).getContext("2d");
  context.drawImage(image, 0, 0, width, HEIGHT);
  image.close();
  const pixels = context.getImageData(0, 0, width, HEIGHT).data;
  const data = new Float32Array(3 * HEIGHT * WIDTH);
  for (let row = 0; row < HEIGHT; row++) {
    for (let column = 0; column < width; column++) {
      for (let channel = 0; channel < 3; channel++) {
        const value = pixels[4 * (row * width + column) + 2 - channel];
        data[(channel * HEIGHT + row) * WIDTH + column] = (value / 255 - 0.5) / 0.5;
      }
    }
  }
  return { data, dims: [1, 3, HEIGHT, WIDTH] };
}
